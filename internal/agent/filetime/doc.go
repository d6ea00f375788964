// Package filetime reads the time of a file that no program can set.
package filetime
