package pkgref

import "strings"

// goName accepts a module path verbatim: paths are case-sensitive, and two
// spellings are two modules. The first element is a host-like name with a dot.
func goName(path string) (string, bool) {
	if path == "" || len(path) > maxModulePath {
		return "", false
	}
	for i, element := range strings.Split(path, "/") {
		if !goElement(element) {
			return "", false
		}
		if i == 0 && !goHost(element) {
			return "", false
		}
	}
	return path, true
}

func goElement(s string) bool {
	if s == "" || s[0] == '.' || s[len(s)-1] == '.' {
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

func goHost(s string) bool {
	return strings.Contains(s, ".") && s[0] != '-' && strings.ToLower(s) == s && !strings.ContainsAny(s, "_~")
}
