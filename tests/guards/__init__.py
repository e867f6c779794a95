"""What requests cost and how costs grow, by count and not by time: any machine shows a regression, under any load."""
