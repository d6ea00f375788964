-- Lost: what attempts held over time.
DROP TABLE memory_points;
