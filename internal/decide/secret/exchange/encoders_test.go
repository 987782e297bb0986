package exchange

import (
	"encoding/base64"
	"encoding/json"
	"html"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
)

// encoders are what programs of many hosts write a text by, once.
func encoders() map[string]func(string) string {
	quoted := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	plain := func(s string) string { return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"` }
	return map[string]func(string) string{
		"JSON of Python": plain,
		"JSON of Go":     quoted,
		"JSON of PHP":    func(s string) string { return strings.ReplaceAll(plain(s), "/", `\/`) },
		"JSON of Gson": func(s string) string {
			return strings.NewReplacer("<", `\u003c`, ">", `\u003e`, "&", `\u0026`, "=", `\u003d`, "'", `\u0027`).Replace(plain(s))
		},
		"JSON of .NET": func(s string) string {
			return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\u0022`, "<", `\u003C`, ">", `\u003E`, "&", `\u0026`, "'", `\u0027`, "+", `\u002B`, "`", `\u0060`).Replace(s) + `"`
		},
		"JSON of Rails": func(s string) string {
			return strings.NewReplacer("<", `\u003c`, ">", `\u003e`, "&", `\u0026`).Replace(plain(s))
		},
		"HTML of Go":       html.EscapeString,
		"HTML of Python":   strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#x27;").Replace,
		"HTML of mustache": strings.NewReplacer("&", "&amp;", "/", "&#x2F;", "=", "&#x3D;", "`", "&#x60;", `"`, "&quot;", "'", "&#39;", "<", "&lt;", ">", "&gt;").Replace,
		"a form":           url.QueryEscape,
		"a path":           url.PathEscape,
		"encodeURIComponent": func(s string) string {
			return strings.NewReplacer("+", "%20", "%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*").Replace(url.QueryEscape(s))
		},
		"HTML in HTML":   func(s string) string { return html.EscapeString(html.EscapeString(s)) },
		"HTML in JSON":   func(s string) string { return quoted(html.EscapeString(s)) },
		"HTML in a form": func(s string) string { return url.QueryEscape(html.EscapeString(s)) },
		"a form in HTML": func(s string) string { return html.EscapeString(url.QueryEscape(s)) },
		"JSON in a form": func(s string) string { return url.QueryEscape(quoted(s)) },
		"a form in JSON": func(s string) string { return quoted(url.QueryEscape(s)) },
		"JavaScript": func(s string) string {
			return strings.NewReplacer(`\`, `\\`, `"`, `\x22`, "'", `\'`, "<", `\x3C`, "&", `\x26`, "/", `\/`, "=", `\x3D`).Replace(s)
		},
		"a shell": func(s string) string {
			return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`", "!", `\!`).Replace(s)
		},
		"HTML in base64":         func(s string) string { return base64.StdEncoding.EncodeToString([]byte(html.EscapeString(s))) },
		"JSON of Go in HTML":     func(s string) string { return html.EscapeString(quoted(s)) },
		"JSON of Python in JSON": func(s string) string { return plain(plain(s)) },
	}
}

// TestAnySecretIsFoundByOneEncoder: a secret may be any printable text, also a password with all signs.
func TestAnySecretIsFoundByOneEncoder(t *testing.T) {
	for what, letters := range map[string]string{
		"letters, figures and signs of URLs (control)": alnum + "-_.~",
		"base64 (control)":                       alnum + "+/=",
		"without a backslash and a percent sign": alnum + "!\"#$&'()*+,-./:;<=>?@[]^_`{|}~",
		"without a backslash":                    alnum + "!\"#$%&'()*+,-./:;<=>?@[]^_`{|}~",
		"all that is printable":                  alnum + "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~",
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			const secretsPerCell = 400
			r := rand.New(rand.NewPCG(7, 7))
			all := encoders()
			leaked, example := map[string]int{}, map[string]string{}
			for range secretsPerCell {
				secret := junk(r, letters, 32)
				n := newNeedles(map[string][]string{"it": {secret}})
				for name, encode := range all {
					written := encode(secret)
					if strings.Contains(n.masked("{\"a\":1,\"key\": "+written+" ,\"b\":2}"), written) {
						leaked[name]++
						example[name] = secret + "   as   " + written
					}
				}
			}
			for name, count := range leaked {
				t.Errorf("%s: %d of %d secrets come in whole: %s", name, count, secretsPerCell, example[name])
			}
		})
	}
}

// TestAKeyOfJSONIsFoundInJSON: a secret may be a line of JSON, as a service's account has it, with
// backslashes of its own.
func TestAKeyOfJSONIsFoundInJSON(t *testing.T) {
	const account = `{"type":"service_account","private_key":"-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEF\n-----END PRIVATE KEY-----\n","client_email":"a@b.example"}`
	n := newNeedles(map[string][]string{"it": {account}})
	for name, encode := range encoders() {
		if written := `{"key": ` + encode(account) + ` }`; strings.Contains(n.masked(written), encode(account)) {
			t.Errorf("%s: it comes in whole: %.120s", name, written)
		}
	}
}
