package approval

import "strings"

// The beginnings of ids.
const (
	idPrefix    = "ap-"
	groupPrefix = "apg-"
)

// IsGroup tells whether an id is that of a group.
func IsGroup(id string) bool { return strings.HasPrefix(id, groupPrefix) }

// wellFormed tells whether an id can be one of ours: up to 64 of a to z, 0 to 9
// and "-" after the prefix.
func wellFormed(prefix, id string) bool {
	rest, ok := strings.CutPrefix(id, prefix)
	return ok && rest != "" && len(id) <= 64 && strings.Trim(rest, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}
