"""Reports of a drift: functions of the Drift document alone, one file each."""
