"""Runs explainers on images and measures them: settings, images, every measurement computed once and kept."""
