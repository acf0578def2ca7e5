"""The paper's comparison on any data set: conditions, runs that resume, tables and a report."""
