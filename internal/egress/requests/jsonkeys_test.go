package requests

import (
	encoding "encoding/json"
	"net/url"
	"strings"
	"testing"
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
		if form := (&formKeys{}).read([]byte(url.QueryEscape(key) + "=DELETE")); (form != "") != refused {
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
