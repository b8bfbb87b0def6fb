"""What calls may cost, and how often they may be made: asked before each, in one account a job."""
