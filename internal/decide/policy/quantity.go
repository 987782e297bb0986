package policy

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// maxDuration bounds every duration of a document.
const maxDuration = 10 * 365 * 24 * time.Hour

// parseDuration reads a whole number with a unit, or several in a row: "7d",
// "36h", "1h30m", "20s". Zero needs a unit too.
func parseDuration(s string) (time.Duration, bool) {
	var total time.Duration
	if s == "" || len(s) > 40 {
		return 0, false
	}
	for s != "" {
		digits := len(s) - len(strings.TrimLeft(s, "0123456789"))
		if digits == 0 || digits > 10 || digits == len(s) {
			return 0, false
		}
		n, err := strconv.ParseInt(s[:digits], 10, 64)
		if err != nil {
			return 0, false
		}
		unit := durationUnit(s[digits])
		s = s[digits+1:]
		if unit == 0 || n > int64(maxDuration/unit) {
			return 0, false
		}
		if total += time.Duration(n) * unit; total > maxDuration {
			return 0, false
		}
	}
	return total, true
}

func durationUnit(c byte) time.Duration {
	switch c {
	case 'w':
		return 7 * 24 * time.Hour
	case 'd':
		return 24 * time.Hour
	case 'h':
		return time.Hour
	case 'm':
		return time.Minute
	case 's':
		return time.Second
	}
	return 0
}

// quantityFactor tells by what a suffix multiplies. The suffixes are Kubernetes' own.
func quantityFactor(suffix string) (float64, bool) {
	switch suffix {
	case "":
		return 1, true
	case "m":
		return 1e-3, true
	case "k":
		return 1e3, true
	case "M":
		return 1e6, true
	case "G":
		return 1e9, true
	case "T":
		return 1e12, true
	case "Ki":
		return 1 << 10, true
	case "Mi":
		return 1 << 20, true
	case "Gi":
		return 1 << 30, true
	case "Ti":
		return 1 << 40, true
	}
	return 0, false
}

// parseQuantity reads a Kubernetes quantity: "2", "0.5", "500m", "4Gi".
func parseQuantity(s string) (float64, bool) {
	if len(s) > 24 {
		return 0, false
	}
	number := strings.TrimRight(s, "mkKMGTi")
	factor, ok := quantityFactor(s[len(number):])
	if !ok || number == "" || number[0] == '.' || strings.Trim(number, "0123456789.") != "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsInf(n*factor, 0) {
		return 0, false
	}
	return n * factor, true
}
