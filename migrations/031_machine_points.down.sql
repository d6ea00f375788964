-- Lost: how full machines were.
DROP TABLE machine_points;
