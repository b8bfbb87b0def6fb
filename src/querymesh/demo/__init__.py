"""The motivating example of Query Mesh (QM § 1.1) as a stream to watch: bullish stocks in the news.

The paper's query looks for stocks that show a bullish pattern while their sector is in the news and
their company in street research. Its sliding windows are not part of this demo: News and
StreetResearch are look-up tables, as of now.
"""
