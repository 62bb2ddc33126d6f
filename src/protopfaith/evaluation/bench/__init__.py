"""The bench that explainers are put on: settings, images, and every measurement computed once and kept."""
