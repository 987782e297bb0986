package npm

import "github.com/go-json-experiment/json/jsontext"

// appendCompact appends a valid JSON value without the blanks around its tokens.
func appendCompact(dst []byte, v jsontext.Value) []byte {
	inString, from := false, 0
	for i := 0; i < len(v); i++ {
		switch c := v[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case !inString && (c == ' ' || c == '\n' || c == '\t' || c == '\r'):
			dst = append(dst, v[from:i]...)
			from = i + 1
		}
	}
	return append(dst, v[from:]...)
}

// appendMember appends a member to an object that was begun.
func appendMember(dst []byte, name string, v jsontext.Value) []byte {
	return appendCompact(appendName(dst, name), v)
}

func appendName(dst []byte, name string) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	return append(appendText(dst, name), ':')
}

// appendText appends a JSON string. Its argument was read from one.
func appendText(dst []byte, s string) []byte {
	q, err := jsontext.AppendQuote(dst, s)
	if err != nil { // not reached: s is UTF-8
		return append(dst, `""`...)
	}
	return q
}
