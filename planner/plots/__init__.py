"""The plots of report.html and `plots/*.svg`."""
