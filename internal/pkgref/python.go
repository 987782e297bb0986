package pkgref

// pythonName normalises by PEP 503: ASCII letters, digits and runs of "-_.",
// beginning and ending with a letter or digit; lower case, each run one "-".
func pythonName(name string) (string, bool) {
	if name == "" || len(name) > maxName {
		return "", false
	}
	out := make([]byte, 0, len(name))
	run := false
	for i := range len(name) {
		c := name[i]
		switch {
		case isLower(c) || isDigit(c):
		case isUpper(c):
			c += 'a' - 'A'
		case c == '-' || c == '_' || c == '.':
			if len(out) == 0 {
				return "", false
			}
			run = true
			continue
		default:
			return "", false
		}
		if run {
			out = append(out, '-')
			run = false
		}
		out = append(out, c)
	}
	return string(out), !run
}

func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
