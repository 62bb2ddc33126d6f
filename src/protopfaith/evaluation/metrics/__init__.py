"""What is measured of explanations and networks: functions of tensors, each in the file of its kind."""
