package pkgref

// rustName folds as cargo's registry compares: lower case, "_" as "-". The
// canonical name is a key; whoever fetches keeps the registry's own spelling.
func rustName(name string) (string, bool) {
	const longest = 64
	if name == "" || len(name) > longest || (!isLower(name[0]) && !isUpper(name[0])) {
		return "", false
	}
	out := []byte(name)
	for i, c := range out {
		switch {
		case isLower(c) || isDigit(c) || c == '-':
		case isUpper(c):
			out[i] = c + 'a' - 'A'
		case c == '_':
			out[i] = '-'
		default:
			return "", false
		}
	}
	return string(out), true
}
