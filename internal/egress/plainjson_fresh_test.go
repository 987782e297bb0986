package egress_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestAMethodInJSONThatIsCalledText: some servers read JSON whatever its type is (express.json with
// type */*), and take _method in it for the method: Parse Server does, and its own clients send all
// requests as POST with JSON that is called text/plain. So where methods count, such a body gives a
// request another method. The controls: as application/json it is refused, and a text in which that
// is no key of an object arrives.
func TestAMethodInJSONThatIsCalledText(t *testing.T) {
	const rules = "network_allowlist:\n  - { host: api.example, methods: [GET, POST], paths: [\"/good\"] }\n"
	each(t, func(t *testing.T, http2 bool) {
		t.Helper()
		got := &seen{}
		c := endUnder(t, rules, got, "api.example").client(t, http2)
		send := func(kind, body string) bool {
			t.Helper()
			before := len(got.all())
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.example/good", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if kind != "" {
				r.Header.Set("Content-Type", kind)
			}
			a, err := c.Do(r)
			if err != nil {
				return false
			}
			defer a.Body.Close()
			return a.StatusCode == http.StatusOK && len(got.all()) > before
		}
		const override = `{"_method":"DELETE","_ApplicationId":"app"}`
		if send("application/json", override) {
			t.Error("INCONCLUSIVE: as JSON it arrives")
		}
		if !send("text/plain", `{"text":"_method"}`) {
			t.Error("INCONCLUSIVE: a harmless text does not arrive")
		}
		for _, kind := range []string{"text/plain", "text/plain;charset=UTF-8", "application/octet-stream", ""} {
			if send(kind, override) {
				t.Errorf("as %q it arrives: %q", kind, got.all()[len(got.all())-1])
			}
		}
	})
}

// TestPatternsInWhatIsNoUTF8: an overlong escape is a letter to servers that are not particular, for
// which reason no path has one where paths count; and a byte that is no UTF-8 is nothing to those
// that leave out what they can't read. The controls: as it is, the word is found, and a harmless
// one arrives.
func TestPatternsInWhatIsNoUTF8(t *testing.T) {
	const rules = "network_allowlist:\n  - { host: api.example, paths: [\"/good\"], deny_patterns: [\"secret-[0-9]+\"] }\n"
	got := &seen{}
	c := endUnder(t, rules, got, "api.example").client(t, false)
	for how, w := range map[string]worded{
		"overlong in a query":        {query: "?a=%c1%b3ecret-12345"},
		"overlong in a form":         {body: "a=%c1%b3ecret-12345", kind: "application/x-www-form-urlencoded"},
		"overlong in JSON":           {body: "{\"a\":\"\xc1\xb3ecret-12345\"}", kind: "application/json"},
		"a stray byte in a query":    {query: "?a=sec%ffret-12345"},
		"a stray byte in JSON":       {body: "{\"a\":\"sec\xffret-12345\"}", kind: "application/json"},
		"a stray byte in a field":    {header: map[string]string{"X-A": "sec\xffret-12345"}},
		"as it is in a query":        {query: "?a=secret-12345"},
		"as it is in JSON":           {body: `{"a":"secret-12345"}`, kind: "application/json"},
		"INCONCLUSIVE if it arrives": {query: "?a=%73ecret-12345"},
	} {
		if w.sends(t, c, got) {
			t.Errorf("%s, it arrives: %q", how, got.all()[len(got.all())-1])
		}
	}
	if w := (worded{query: "?a=%c3%a9", body: "{\"a\":\"\xc3\xa9\"}", kind: "application/json"}); !w.sends(t, c, got) {
		t.Error("INCONCLUSIVE: a harmless one does not arrive")
	}
}
