package npm

import (
	"encoding/base64"
	"strings"
	"testing"
)

func TestStrongest(t *testing.T) {
	sum := func(algorithm string, size int, b byte) (sri, digest string) {
		raw := []byte(strings.Repeat(string(rune(b)), size))
		digest = algorithm + ":"
		for range raw {
			digest += "0123456789abcdef"[b>>4:b>>4+1] + "0123456789abcdef"[b&15:b&15+1]
		}
		return algorithm + "-" + base64.StdEncoding.EncodeToString(raw), digest
	}
	a512, d512 := sum("sha512", 64, 1)
	b512, _ := sum("sha512", 64, 2)
	a384, d384 := sum("sha384", 48, 3)
	a256, d256 := sum("sha256", 32, 4)
	a1, d1 := sum("sha1", 20, 5)
	for name, c := range map[string]struct{ integrity, shasum, digest, reason string }{
		"one":                {a512, "", d512, ""},
		"strongest of all":   {a1 + " " + a256 + "\t" + a512 + " " + a384, "", d512, ""},
		"384":                {a256 + " " + a384, "", d384, ""},
		"256":                {a1 + " " + a256, "", d256, ""},
		"only weak":          {a1, "", d1, ""},
		"options":            {a512 + "?x", "", d512, ""},
		"unknown ones":       {"md5-AAAA sha3-512-AAAA " + a512, "", d512, ""},
		"the same twice":     {a512 + " " + a512, "", d512, ""},
		"two of one":         {a512 + " " + b512, "", "", "two digests"},
		"short":              {"sha512-AAAA", "", "", "wrong length"},
		"not base64":         {"sha256-????", "", "", "wrong length"},
		"short beside weak":  {"sha512-AAAA " + a256, "", "", "wrong length"},
		"shasum":             {"", strings.ToUpper(d1[len("sha1:"):]), d1, ""},
		"shasum for unknown": {"md5-AAAA", d1[len("sha1:"):], d1, ""},
		"strong and shasum":  {a512, "zz", d512, ""},
		"bad shasum":         {"", "zz", "", "no SHA-1"},
		"long shasum":        {"", strings.Repeat("0", 64), "", "no SHA-1"},
		"none":               {"", "", "", ""},
	} {
		digest, reason := strongest(c.integrity, c.shasum)
		if digest != c.digest || (c.reason == "") != (reason == "") || !strings.Contains(reason, c.reason) {
			t.Errorf("%s: %q, %q; want %q, %q", name, digest, reason, c.digest, c.reason)
		}
	}
}
