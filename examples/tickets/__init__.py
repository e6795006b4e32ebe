"""Support tickets from a file to a report: read, classify, extract and listen in parallel, route to desks, join, report."""
