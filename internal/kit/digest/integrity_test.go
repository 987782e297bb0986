package digest_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/digest"
)

func sum(algorithm string, size int, b byte) (sri, digest string) {
	raw := bytes.Repeat([]byte{b}, size)
	return algorithm + "-" + base64.StdEncoding.EncodeToString(raw), algorithm + ":" + hex.EncodeToString(raw)
}

func TestStrongest(t *testing.T) {
	a512, da512 := sum("sha512", 64, 1)
	b512, db512 := sum("sha512", 64, 2)
	a384, da384 := sum("sha384", 48, 3)
	a256, da256 := sum("sha256", 32, 4)
	a1, da1 := sum("sha1", 20, 5)
	// The same bytes, with bits behind the last one: another spelling.
	loose := strings.TrimSuffix(a256, "=")
	loose = loose[:len(loose)-1] + string(loose[len(loose)-1]+1) + "="
	for name, c := range map[string]struct {
		text      string
		digests   []string
		malformed string
	}{
		"none":                  {"", nil, ""},
		"one":                   {a384, []string{da384}, ""},
		"the strongest":         {a1 + " " + a256 + "\t" + a512, []string{da512}, ""},
		"two of one":            {a512 + " " + b512, []string{da512, db512}, ""},
		"one twice":             {a256 + "\n" + a256 + "?x", []string{da256}, ""},
		"weak":                  {a1, []string{da1}, ""},
		"unknown ones":          {"md5-AAAA sha3-512-AAAA " + a256, []string{da256}, ""},
		"unknown alone":         {"md5-AAAA", nil, ""},
		"malformed, not needed": {"sha256-YQ== " + a512, []string{da512}, ""},
		"malformed strongest":   {a256 + " sha512-YQ==", nil, "sha512-YQ=="},
		"loose base64":          {loose, nil, loose},
	} {
		digests, malformed := digest.Strongest(c.text)
		if !slices.Equal(digests, c.digests) || malformed != c.malformed {
			t.Errorf("%s: %q, %q", name, digests, malformed)
		}
	}
}

func FuzzStrongest(f *testing.F) {
	f.Add("sha512-AAAA sha256-YQ==?x")
	f.Fuzz(func(t *testing.T, text string) {
		digests, malformed := digest.Strongest(text)
		if malformed != "" && (len(digests) > 0 || !strings.Contains(text, malformed)) {
			t.Errorf("%q and %q", digests, malformed)
		}
		for _, d := range digests {
			algorithm, hash, _ := strings.Cut(d, ":")
			if !strings.Contains(text, algorithm+"-") || strings.ToLower(hash) != hash {
				t.Errorf("%q of %q", d, text)
			}
		}
	})
}
