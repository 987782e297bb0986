package requests

import (
	"encoding/json"
	"net/url"
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
		body, err := json.Marshal(map[string]any{"a": map[string]string{"_method": "b"}, key: "DELETE"})
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
	for body, refused := range map[string]bool{
		`{"http_method":"GET"}`: false, `{"httpMethod":"GET"}`: false, // which services have as data
		`{"_method"="DELETE"}`: true, `{"_method" => "DELETE"}`: true, `{"a"="_method"}`: false,
		"{ # '\n\"_method\":\"DELETE\"}": true, "{\"a\": \"#\", \"b\": 1} # _method": false, "{ # _method: it's\n\"a\": 1}": false,
		"{\"a\":1, //\u2028 \"_method\":\"DELETE\"}": true, "{\"a\":1, // b \u2029 c\n}": true, "{\"a\":1, // \u2027\u20ac b\n}": false, "{\"a\":\"\u2028\"}": false, "{\"a\":1, /* \u2028 */ \"b\":1}": false,
	} {
		for _, kind := range kinds[:2] {
			for _, cut := range []int{1, 2, len(body)} {
				if wrong := verdict(kind, []byte(body), cut); (wrong != "") != refused {
					t.Errorf("%s by %d: %q is %q", kind, cut, body, wrong)
				}
			}
		}
	}
}
