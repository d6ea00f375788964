// Package expr computes the small expressions of a sweep file: the value of a
// derived parameter, such as ceil(0.1 * epochs), and the conditions of
// forbid, such as batch * width > 65536 and optimizer == "adam".
//
//	lowest   or ||
//	         and &&
//	         not !
//	         == != < <= > >=           one per comparison, no chains
//	         + -
//	         * / // %                  // and % round down, as in Python
//	         - (sign)
//	highest  ** (to the right)         calls, parentheses, names, literals
//
// Functions: abs ceil exp floor log max min pow round sqrt. Whole numbers stay
// whole under + - * // % **, abs, min and max; ceil, floor and round make them.
//
// It is written here rather than taken from a library because the input comes
// from anyone who may submit a sweep: there are no loops, no allocation that
// grows with a value, and at most MaxLength characters, so an evaluation is
// bounded by the length of its text.
package expr
