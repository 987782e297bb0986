package requests

import (
	"encoding/binary"
	encoding "encoding/json"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"unicode/utf16"
)

// TestAMethodsKeyInJSONIsTheSameAsInAForm: each key by which frameworks take another method from a form is refused in
// JSON, whatever the body's type says, and wherever it is cut. The controls: keys that only have such words in them.
func TestAMethodsKeyInJSONIsTheSameAsInAForm(t *testing.T) {
	kinds := []string{"application/json", "text/plain", ""}
	for key, refused := range map[string]bool{
		"_method": true, "_METHOD": true, "_method[]": true, "_method ": true, "_method\x00": true, "_method\x00a": true, "_method\n": true, "\nmethod": true, "_method_": true,
		"_http_method": true, "X-HTTP-Method": true, "_method_override": true, "x-http-method-override": true, "X-HTTP-Method-Override": true, "method_override": true, "methodOverride": true, "_verb_override": true, "http.method.override": true,
		"method": false, "methods": false, "_methods": false, "a_method": false, "override": false, "overrides_method": false, "": false,
	} {
		if form := (&formKeys{}).readPiece([]byte(url.QueryEscape(key) + "=DELETE")); (form != "") != refused {
			t.Errorf("the control: %q in a form is %q", key, form)
		}
		body, err := encoding.Marshal(map[string]any{"a": map[string]string{"_method": "b"}, key: "DELETE"})
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range kinds {
			for _, cut := range []int{1, 7, len(body)} {
				if wrong := verdict(kind, body, cut); (wrong != "") != refused {
					t.Errorf("%s by %d: %s is %q", kind, cut, body, wrong)
				}
			}
		}
	}
	const (
		none = 0
		json = 1 // in what says that it is JSON
		both = 2 // in what only looks like it, too
	)
	for body, refused := range map[string]int{
		`{"http_method":"GET"}`: none, `{"httpMethod":"GET"}`: none, // which services have as data
		`{"a":"_method"}`: none, `[{"_method":"DELETE"}]`: none, `{"a":[1,-2.5E+3,true,null],"b":{"_method":1},"c":"\u00e9\n\/"}`: none, "{\"a\":\"\u2028\"}": none, "{\"a\":1}\n{\"b\":\"_method\"}": none,

		// By the letter no JSON, each with a word that is the method's somewhere.
		`{"_method"="DELETE"}`: both, `{"_method" => "DELETE"}`: both, `{"a"="_method"}`: json, `{'_method':1}`: both, `{_method:1}`: both, `{a:1;_method:"DELETE"}`: both,
		"{ # '\n\"_method\":\"DELETE\"}": both, "{\"a\": \"#\", \"b\": 1} # _method": json, "{ # _method: it's\n\"a\": 1}": both,
		"{\"a\":1, //\u2028 \"_method\":\"DELETE\"}": both, "{\"a\":1, /* */ \"_method\":1}": both,
		"{\"a\":1, # \r\"x\":{\n\"_method\":\"DELETE\"}": both, "{\"a\":1, // \r\"x\":{\n\"_method\":\"DELETE\"}": both, "{\"a\": 1, # \u0085 \"_method\": \"DELETE\"\n}": both,
		"{\"a\":1#\"x\":{\n,\"_method\":\"DELETE\"}": both, "{\"a\":true#\"x\":{\n,\"_method\":\"DELETE\"}": both, "{\"a\":1#\"\n,\"_method\":\"DELETE\"}": both, "{#,\"_method\":\"DELETE\"}": both,
		"{\"a\":{]},\"_method\":1}": both, "{\"a\":1 \"_method\":1}": both, "{\"a\":{\"_method\":1},}\v": both, "{\"a\":\"\n\",\"b\":{\"_method\":1}}": both,
		`{"a":` + strings.Repeat("[", 100) + `{"_method":1}` + strings.Repeat("]", 100) + "}": both, `{"a":` + strings.Repeat("[", 98) + `{"_method":1}` + strings.Repeat("]", 98) + "}": none,
		"{a: _method": json, "{a: _method}": json, "{'_me\\\nthod':1}": both, `{"\_method"=1}`: both, `{'\x5fmethod':1}`: both, `{'\137method':1}`: both, `{'\u{5f}method':1}`: both, `{'\u005fmethod':1}`: both, `{"\U0000005fmethod":1}`: both, "{_method\x7f :1}": both,

		// A line's end behind a backslash joins what is beside it in a string, to some with blanks and over all of two bytes, and ends a comment.
		"{'_met\\\r\nhod':1}": both, "{'_met\\\u2028hod':1}": both, "{? \"_met\\\n   hod\" : 1}": both, "{? \"_met\\\n\\\r\n\thod\" : 1}": both, "{ //a\\\n_method:1}": both, "{ #a\\\n  _method:1}": both,
		"{\"a\":'it\\\n goes on'}": json, "{_method/*a*/:1}": both, "{'_method' // a\n :1}": both, "{_method #a\n:1}": both,

		// Behind comments.
		"#\n{\"_method\":\"DELETE\"}": both, "// a\n/* { */ # b\n {\"_method\":1}": both, "# a \r {_method:1}": both, "# a \u0085{_method:1}": both, "// \u2028 {_method:1}": both, "/**/{_method:1}": both, "#": none,
		"# a\nb\n{ _method: 1 }": json, "/* sends _method: */ function f() { return { _method: /a/ } }": json, "#!/bin/sh\n_method=1": json, "/ {_method:1}": json,

		// By no letter, or by a tag.
		"{\"_met\xffhod\":1}": json, "{\"a\":\"caf\xe9\"}": json, "{\"a\":\"caf\u00e9 \u20ac \U0001f600\"}": none, "{? !!binary \"X21ldGhvZA==\" : DELETE}": json, "{a: 'b!!'}": json, "{? !binary X21ldGhvZA== : DELETE}": json, "{? !<tag:yaml.example,2002:binary> X21ldGhvZA== : DELETE}": json, "{a: 'b! '}": none, "{ // \\n\"_met\xffhod\":1}": both,
		"/**/{\"_met\xffhod\":1}": both, "//\u2028{\"_met\xffhod\":1}": both, "{//x\u2028_method:1}": both, "_met\xffhod: DELETE": json, "{a\u00a0_method:1}": both, "{? !%62inary X21ldGhvZA== : DELETE}": json,
		"%TAG !1! tag:yaml.example\n--- {? !1!,2002:binary X21ldGhvZA== : DELETE}": json, "{a: \u00a0'm\u00e9thode', b: 1}": none, "{a: '100%', b: 'x! '}": none,

		// By the letter no JSON, and without one.
		"{\"a\":1, // b \u2029 c\n}": none, "{\"a\":1, /* \u2028 */ \"b\":1}": none, "{a:1}": none, "{a:1; b:'http_method'}": none, `{a:"\u00e9", b: a_method, c: methods}`: none, "# A heading\n\nA method.": none, "{ user { method } }": none,
		"{{ form }} <input name=\"_method\" value=\"PUT\">": json, "{\x00\"_method\":1}": both, "{\"a\":\"\x00\",\"_method\":1}": both, "{\x00{\"_method\":1}}": both, "{\"_method\":1}\x00": both,
	} {
		for at, kind := range kinds[:2] {
			for _, cut := range []int{1, 2, len(body)} {
				if wrong := verdict(kind, []byte(body), cut); (wrong != "") != (refused > at) {
					t.Errorf("%s by %d: %q is %q", kind, cut, body, wrong)
				}
			}
		}
	}
}

// TestMessagesOfJSONAreByTheLetter: before JSON there may be a mark, a message's length or a sequence's sign, and it stays JSON, in which such a
// word is no key. A length that stands within it makes it none.
func TestMessagesOfJSONAreByTheLetter(t *testing.T) {
	message := func(flags byte, text string) string {
		return string([]byte{flags, 0, 0, byte(len(text) >> 8), byte(len(text))}) + text
	}
	code := message(0, `{"text":"a().method(), --method=GET, __method__, \"_method\": 1","b":{"_method":1}}`)
	for body, refused := range map[[2]string]bool{
		{"application/connect+json", code}:                                                             false,
		{"application/connect+json", code + code + message(2, "{}")}:                                   false,
		{"application/grpc-web+json", message(0, "{\"a\":\""+strings.Repeat("a", ':'-8)+"\"}") + code}: false,
		{"application/connect+json", code + message(0, `{"_method":1}`)}:                               true,
		{"application/connect+json", message(1, "\x1f\x8b") + code}:                                    true,
		{"application/connect+json", "\x00\x01\x00\x00\x00" + code}:                                    true,
		{"application/connect+json", message(0, "{\"a\":\""+message(0, `{\"_method\":1}`)+"\"}")}:      true,
		{"application/connect+json", message(0, "{\"a\":"+message(0, `{"_method":1}`)+"}")}:            true,
		{"application/connect+json", "\x00\x00{\"_method\":1}"}:                                        true,
		{"application/json-seq", "\x1e{\"a\":\"--method\"}\n\x1e{\"b\":\"_method\"}\n"}:                false,
		{"application/json-seq", "\x1e{\"a\":1}\n\x1e{\"_method\":1}\n"}:                               true,
		{"application/json-seq", "{\x1e\"a\":\"_method\"}"}:                                            true,
		{"application/json", "\ufeff{\"a\":\"--method\"}"}:                                             false,
		{"application/json", "\ufeff{\"_method\":1}"}:                                                  true,
		{"application/json", "\xef\xbb{\"a\":\"_method\"}"}:                                            true,
		{"application/json", "\ufeff\ufeff{\"a\":\"_method\"}"}:                                        true,
	} {
		for _, cut := range []int{1, 2, 7, len(body[1])} {
			if wrong := verdict(body[0], []byte(body[1]), cut); (wrong != "") != refused {
				t.Errorf("%s by %d: %q is %q", body[0], cut, body[1], wrong)
			}
		}
	}
}

// TestAnObjectBehindWhatIsNothingToSome: comments of each kind and blanks of each kind before an object in JSON, up to three of them, in each
// of the letters, wherever the body is cut. It is refused whatever its type says. The controls: the same before an object without such a key,
// and scripts and texts that begin with a comment and are none.
func TestAnObjectBehindWhatIsNothingToSome(t *testing.T) {
	comments := []string{"/**/", "/* a */", "/***/", "/* \n */", "/* { */", "//\n", "// a \r\n", "// { \r", "//\u2028", "// a \u0085", "//\f", "#\n", "# a\r", "/* /* */"}
	blanks := []string{"", " ", "\t\r\n", "\v", "\f", "\ufeff", "\u00a0", "\u0085", "\u1680", "\u2000", "\u200a", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000", "\u180e", "\u200b", "\x01", "\x1c", "\x1e", "\x1f"}
	letters := map[string]func(string) string{
		"UTF-8": func(s string) string { return s }, "UTF-16LE": func(s string) string { return wide(binary.LittleEndian, s) }, "UTF-16BE": func(s string) string { return wide(binary.BigEndian, s) },
	}
	var before []string
	for _, blank := range blanks {
		before = append(before, blank, blank+blank)
		for _, comment := range comments {
			before = append(before, blank+comment, comment+blank)
			for _, other := range comments {
				before = append(before, comment+blank+other+blank)
			}
		}
	}
	for _, text := range before {
		for name, write := range letters {
			for _, cut := range []int{1, 3, 1 << 10} {
				if body := write("  " + text + "{\"_method\":\"DELETE\"}"); verdict("text/plain", []byte(body), cut) == "" {
					t.Errorf("%s by %d: %q passes", name, cut, body)
				}
				if body := write(text + "{\"method\":\"DELETE\"}"); verdict("text/plain", []byte(body), cut) != "" {
					t.Errorf("%s by %d: the control: %q is refused", name, cut, body)
				}
			}
		}
	}
	for _, body := range []string{
		"#!/bin/sh\nset -e\n{ curl \\\n  https://service.example/; }\n", "# A heading\n\nOf {a} and `sort \\\n  key=1`\n", "// a\npackage a\n\nvar b = \"\\0\" // { c }\n", "/* a */\nbody {\n\tcontent: '\\2014' /* _method: */\n}\n", "\u3053\u3093 {_method: 1}",
	} {
		if wrong := verdict("text/plain", []byte(body), len(body)); wrong != "" {
			t.Errorf("%q is %q", body, wrong)
		}
	}
}

// TestABackslashHidesNoWordBehindIt: where a backslash escapes nothing, what stands behind it ends a word, and the next one begins there. The
// control: other words are none there either.
func TestABackslashHidesNoWordBehindIt(t *testing.T) {
	for _, mark := range `,{[:"'}]&*#/\ ` {
		for _, word := range []string{"_method", "http-method-override", "x_verb_override"} {
			before := `{a: b\` + string(mark)
			if body := before + word + ": DELETE}"; verdict("application/json", []byte(body), 3) == "" {
				t.Errorf("%q passes", body)
			}
			if body := before + "y" + word + ": DELETE}"; verdict("application/json", []byte(body), 3) != "" {
				t.Errorf("the control: %q is refused", body)
			}
		}
	}
}

// wide is a text in UTF-16.
func wide(order binary.AppendByteOrder, text string) string {
	var b []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		b = order.AppendUint16(b, unit)
	}
	return string(b)
}

// TestLastWordsLoseNoKey: the words that are looked for before the whole pattern is are in each key that it matches.
func TestLastWordsLoseNoKey(t *testing.T) {
	r, is := rand.New(rand.NewPCG(7, 8)), 0
	pieces := []string{"_", "__", "x", "http", "method", "verb", "override", "charset", "_method", "a", "1", "s"}
	for range 100_000 {
		var text strings.Builder
		for range 1 + r.IntN(6) {
			text.WriteString(pieces[r.IntN(len(pieces))])
		}
		one := key{text: []byte(text.String())}
		want := methodKey.Match(one.text) && len(one.text) >= len("_method")
		if want {
			is++
		}
		if one.isMethodKey() != want {
			t.Fatalf("%q is a method's key: %t", text.String(), !want)
		}
	}
	if is < 1_000 {
		t.Errorf("the control: %d are", is)
	}
}
