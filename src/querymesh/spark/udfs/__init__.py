"""UDFs that people wrote for Spark: taken out of a Column, called as Spark would call them."""
