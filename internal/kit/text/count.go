package text

import "strconv"

// Count is a number with its noun: "1 sandbox", "2 sandboxes", "0 sandboxes".
func Count(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + more
}
