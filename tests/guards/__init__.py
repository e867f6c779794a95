"""What requests cost and how costs grow, by count and not by time: a regression shows on any machine, under any load."""
