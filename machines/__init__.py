"""What may happen: the chart engine, one table of arrows a record, and the pages drawn from them."""
