package egress_test

import "testing"

// TestPatternsInWhatIsNoUTF8: an overlong escape is a letter to servers that are not particular, for
// which reason no path has one where paths count; and a byte that is no UTF-8 is nothing to those
// that leave out what they can't read. The controls: as it is, the word is found, and a harmless
// one arrives.
func TestPatternsInWhatIsNoUTF8(t *testing.T) {
	const rules = "network_allowlist:\n  - { host: api.example, paths: [\"/good\"], deny_patterns: [\"secret-[0-9]+\"] }\n"
	got := &seen{}
	c := endUnder(t, rules, got, "api.example").client(t, false)
	for how, w := range map[string]worded{
		"overlong in a query":     {query: "?a=%c1%b3ecret-12345"},
		"overlong in a form":      {body: "a=%c1%b3ecret-12345", kind: "application/x-www-form-urlencoded"},
		"overlong in JSON":        {body: "{\"a\":\"\xc1\xb3ecret-12345\"}", kind: "application/json"},
		"an overlong escape":      {query: "?a=%c0%a573ecret-12345"},
		"overlong, and stray":     {body: "{\"a\":\"\xc1\xb3ec\xffret-12345\"}", kind: "application/json"},
		"a stray byte in a query": {query: "?a=sec%ffret-12345"},
		"a stray byte in JSON":    {body: "{\"a\":\"sec\xffret-12345\"}", kind: "application/json"},
		"a stray byte in a field": {header: map[string]string{"X-A": "sec\xffret-12345"}},
		"as it is in a query":     {query: "?a=secret-12345"},
		"as it is in JSON":        {body: `{"a":"secret-12345"}`, kind: "application/json"},
		"escaped once":            {query: "?a=%73ecret-12345"},
	} {
		if w.sends(t, c, got) {
			t.Errorf("%s, it arrives: %q", how, got.all()[len(got.all())-1])
		}
	}
	if w := (worded{query: "?a=%c3%a9", body: "{\"a\":\"\xc3\xa9\"}", kind: "application/json"}); !w.sends(t, c, got) {
		t.Error("the control: a harmless one does not arrive")
	}
}
