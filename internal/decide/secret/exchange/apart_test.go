package exchange

import (
	"encoding/base64"
	"html"
	"strings"
	"testing"
)

// TestEscapesOfOneKindThatAreWrittenApart: a secret has several escapes of one kind of its own, and a host writes
// some of them once more, or twice: of a text that was put together of parts, one of which had been escaped
// before. The control: a secret with another letter comes as it was written.
func TestEscapesOfOneKindThatAreWrittenApart(t *testing.T) {
	for _, c := range []struct{ secret, sign, more string }{
		{"pa%41ss-of-%42-service", "%", "%25"},
		{"pa%41ss%43of-%42-ser%44vice", "%", "%25"},
		{"pa&#65;ss-of-&#66;-service", "&", "&amp;"},
		{"pa&lt;ss-of-&gt;-service", "&", "&amp;"},
		{`pa\u0041ss-of-\u0042-service`, `\`, `\\`},
		{`pa\x41ss-of-\x42-ser\x43vice`, `\`, `\u005c`},
		{"%41%42%43%44%45%46-service", "%", "%25"}, // of so many each one alone, and all but each one
	} {
		sought := newNeedles(map[string][]string{"it": {c.secret}})
		parts := strings.SplitAfter(c.secret, c.sign)
		signs := len(parts) - 1
		for some := range 1 << signs {
			if ones := onesIn(some); signs > maxApart && ones > 1 && ones < signs-1 {
				continue
			}
			for times := 1; times <= 2; times++ {
				written, other := "", ""
				for i, part := range parts {
					if i < signs && some>>i&1 == 1 {
						part = strings.TrimSuffix(part, c.sign) + again(c.sign, c.more, times)
					}
					written += part
				}
				other = strings.Replace(written, "ser", "sEr", 1)
				for name, around := range map[string]func(string) string{
					"as it is": func(s string) string { return s },
					"base64":   func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
				} {
					text := `{"a": "` + around(written) + `"}`
					if out := sought.masked(text); strings.Contains(out, around(written)) {
						t.Errorf("%s, %s, %b of its escapes %d times more: %q", c.secret, name, some, times, text)
					}
					if text := `{"a": "` + around(other) + `"}`; sought.masked(text) != text {
						t.Errorf("%s, %s: the control came as %q", c.secret, name, sought.masked(text))
					}
				}
			}
		}
		if text := html.EscapeString(c.secret); strings.Contains(sought.masked(text), text) {
			t.Errorf("%s: all of them in markup: %q", c.secret, text)
		}
	}
}

// again is a sign that is escaped so many times.
func again(sign, more string, times int) string {
	text := sign
	for range times {
		text = strings.ReplaceAll(text, sign, more)
	}
	return text
}

func onesIn(n int) (ones int) {
	for ; n > 0; n >>= 1 {
		ones += n & 1
	}
	return ones
}

// TestAPairInBase64IsFoundAsWhatItIs: an operator may keep user and password as basic authentication sends them.
// A host that is shown it decodes it, and may say the password. The controls: the user's name, which proves nothing,
// and another password.
func TestAPairInBase64IsFoundAsWhatItIs(t *testing.T) {
	encode := base64.StdEncoding.EncodeToString
	for name, c := range map[string]struct{ kept, says string }{
		"the password":            {encode([]byte("deploy:correct-horse")), "correct-horse"},
		"with a colon":            {encode([]byte("deploy:correct:horse")), "correct:horse"},
		"both":                    {encode([]byte("deploy:correct-horse")), "deploy:correct-horse"},
		"for URLs, without end":   {base64.RawURLEncoding.EncodeToString([]byte("deploy:?>~correct-horse")), "?>~correct-horse"},
		"the user that is a key":  {encode([]byte("a-token-of-ours:x-oauth-basic")), "a-token-of-ours"},
		"the user without one":    {encode([]byte("a-token-of-ours:")), "a-token-of-ours"},
		"as it is":                {encode([]byte("deploy:correct-horse")), encode([]byte("deploy:correct-horse"))},
		"as the server stores it": {encode([]byte("deploy:correct-horse")), encode([]byte("user=deploy&password=correct-horse"))},
	} {
		if s := NewSought(c.kept); !s.In(`{"you said": "`+c.says+`"}`) || s.In(`{"user": "deploy", "password": "correct-house"}`) {
			t.Errorf("%s: %q of %q: %t", name, c.says, c.kept, s.In(c.says))
		}
	}
	if s := NewSought(encode([]byte("deploy-of-all:pw"))); s.In("deploy-of-all") {
		t.Error("a user's name is looked for")
	}
	if NewSought() != nil || NewSought("", "short") != nil {
		t.Error("something is looked for without a text")
	}
}
