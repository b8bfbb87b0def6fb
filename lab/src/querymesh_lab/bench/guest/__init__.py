"""`querymesh bench guest`: is `df.transform(qm.where(...))` ever slower than `df.filter(...)`?"""
