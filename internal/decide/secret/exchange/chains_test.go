package exchange

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"math/rand/v2"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
)

// step is one way of writing a text. kind is e for an escape, d for an encoding.
type step struct {
	name string
	kind byte
	do   func(r *rand.Rand, s string) string
}

func lined(r *rand.Rand, s string) string {
	width := []int{4, 16, 60, 64, 76}[r.IntN(5)]
	end := []string{"\n", "\r\n", "\n  ", "\r\n\t", "\n\n"}[r.IntN(5)]
	at := r.IntN(width)
	var b strings.Builder
	for i := range len(s) {
		if i > 0 && i%width == at {
			b.WriteString(end)
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func junk(r *rand.Rand, letters string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[r.IntN(len(letters))]
	}
	return string(b)
}

const alnum = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

func around(r *rand.Rand, s string) string {
	return junk(r, alnum+" {}\":,\n", r.IntN(40)) + s + junk(r, alnum+" {}\":,\n", r.IntN(40))
}

func some(r *rand.Rand, s string, f func(c byte) string) string {
	var b strings.Builder
	p := r.Float64()
	for _, c := range []byte(s) {
		if r.Float64() < p || !strings.ContainsRune(alnum, rune(c)) {
			b.WriteString(f(c))
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func steps() []step {
	return []step{
		{"json", 'e', func(_ *rand.Rand, s string) string { q, _ := json.Marshal(s); return string(q) }},
		{"uXXXX", 'e', func(r *rand.Rand, s string) string {
			return some(r, s, func(c byte) string { return fmt.Sprintf(`\u%04x`, c) })
		}},
		{"xXX", 'e', func(r *rand.Rand, s string) string {
			return some(r, s, func(c byte) string { return fmt.Sprintf(`\x%02X`, c) })
		}},
		{"percent", 'e', func(r *rand.Rand, s string) string {
			return some(r, s, func(c byte) string { return fmt.Sprintf(`%%%02X`, c) })
		}},
		{"query", 'e', func(_ *rand.Rand, s string) string { return url.QueryEscape(s) }},
		{"html", 'e', func(_ *rand.Rand, s string) string { return html.EscapeString(s) }},
		{"html numbers", 'e', func(r *rand.Rand, s string) string {
			return some(r, s, func(c byte) string { return "&#" + strconv.Itoa(int(c)) + ";" })
		}},
		{"html hex", 'e', func(r *rand.Rand, s string) string {
			return some(r, s, func(c byte) string { return fmt.Sprintf("&#x%X;", c) })
		}},
		{"b64", 'd', func(r *rand.Rand, s string) string { return base64.StdEncoding.EncodeToString([]byte(around(r, s))) }},
		{"b64url", 'd', func(r *rand.Rand, s string) string { return base64.RawURLEncoding.EncodeToString([]byte(around(r, s))) }},
		{"b64 lines", 'd', func(r *rand.Rand, s string) string {
			return lined(r, base64.StdEncoding.EncodeToString([]byte(around(r, s))))
		}},
		{"hex", 'd', func(r *rand.Rand, s string) string { return hex.EncodeToString([]byte(around(r, s))) }},
		{"hex lines", 'd', func(r *rand.Rand, s string) string { return lined(r, hex.EncodeToString([]byte(around(r, s)))) }},
	}
}

// TestChainsOfWritings: whatever a host writes a secret in, up to three deep, and wherever its chunks end.
func TestChainsOfWritings(t *testing.T) {
	seed := uint64(1)
	if s, err := strconv.ParseUint(os.Getenv("CHAINS_SEED"), 10, 64); err == nil {
		seed = s
	}
	rounds := chainRounds
	if n, err := strconv.Atoi(os.Getenv("CHAINS_ROUNDS")); err == nil {
		rounds = n
	}
	r := rand.New(rand.NewPCG(seed, 2))
	all := steps()
	failed := map[string]int{}
	for range rounds {
		secret := junk(r, alnum+"-_.+/=", 20+r.IntN(44))
		secret = strings.TrimSpace(secret)
		text, names, e, d := secret, []string{}, 0, 0
		for range 1 + r.IntN(3) {
			s := all[r.IntN(len(all))]
			if s.kind == 'e' && e == 2 || s.kind == 'd' && d == 2 {
				continue
			}
			if s.kind == 'e' {
				e++
			} else {
				d++
			}
			if s.name == "query" && strings.Contains(strings.Join(names, " "), "lines") {
				continue // a blank that indents a line becomes a plus there: another test's
			}
			text = s.do(r, text)
			names = append(names, s.name)
		}
		before := junk(r, alnum+" \n{}\":,.;<>/=%&\\", r.IntN(9000))
		if r.IntN(3) == 0 {
			before = junk(r, alnum+"+/", r.IntN(9000)) + " "
		}
		behind := " " + junk(r, alnum+" \n{}\":,.;<>/", r.IntN(300))
		whole := before + `"` + text + `"` + behind
		n := newNeedles(map[string][]string{"it": {secret}})
		sc := &scan{needles: n}
		var out []byte
		for at := 0; at < len(whole); {
			size := []int{1, 1 + r.IntN(7), 1 + r.IntN(100), 1 + r.IntN(5000), 8192, 20000}[r.IntN(6)]
			if r.IntN(2) == 0 && at > len(before)-50 {
				size = 1 + r.IntN(10)
			}
			end := min(len(whole), at+size)
			got, _ := sc.takeMore([]byte(whole[at:end]), false)
			out = append(out, got...)
			at = end
		}
		got, _ := sc.takeMore(nil, true)
		out = append(out, got...)
		if len(out) != len(whole) {
			t.Fatalf("%v: %d bytes of %d", names, len(out), len(whole))
		}
		for i, half := range []string{secret[:len(secret)/2], secret[len(secret)/2:]} {
			if newNeedles(map[string][]string{"it": {half}}).findInText(string(out)) != "" {
				key := fmt.Sprint(strings.Join(names, " > "), ", half ", i)
				if failed[key]++; failed[key] == 1 {
					t.Errorf("%s, in %d bytes: secret %q text %.200q got %.200q", key, len(whole), secret, text, out[len(before)+1:len(before)+1+len(text)])
				}
			}
		}
		region := string(out[len(before)+1 : len(before)+1+len(text)])
		if region == text {
			key := strings.Join(names, " > ")
			if failed[key]++; failed[key] == 1 {
				t.Errorf("%s: whole, in %d bytes: secret %q text %.200q", key, len(whole), secret, text)
			}
		}
	}
	t.Log(failed)
}
