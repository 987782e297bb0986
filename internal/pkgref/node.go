package pkgref

import "strings"

// nodeName accepts "name" and "@scope/name" verbatim. npm compares names
// exactly, and old names with capitals are packages of their own, so no
// spelling is folded into another.
func nodeName(name string) (string, bool) {
	if len(name) > maxName {
		return "", false
	}
	bare := name
	if rest, scoped := strings.CutPrefix(name, "@"); scoped {
		scope, after, ok := strings.Cut(rest, "/")
		if !ok || !nodePart(scope) {
			return "", false
		}
		bare = after
	}
	return name, nodePart(bare) && bare != "node_modules" && bare != "favicon.ico"
}

// nodePart is one path segment that no URL or file system reads as anything
// but itself.
func nodePart(s string) bool {
	if s == "" || s[0] == '.' || s[0] == '_' || s[0] == '-' {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !isLower(c) && !isUpper(c) && !isDigit(c) && !strings.ContainsRune("-._~", rune(c)) {
			return false
		}
	}
	return true
}
