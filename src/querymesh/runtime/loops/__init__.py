"""What the driver does while a query runs: learn, plan, tune, hand on."""
