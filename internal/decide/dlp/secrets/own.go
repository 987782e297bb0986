package secrets

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/google/osv-scalibr/veles/secrets/jwt"

	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp"
)

// ownRules are the forms that the library has not, has only together with something else, or
// reads whole files for.
func ownRules() []dlp.Rule {
	tokens, names := dlp.AlphabetOf(dlp.Letters, dlp.Digits, "-_"), dlp.AlphabetOf(dlp.Upper, dlp.Digits)
	armour := dlp.AlphabetOf(dlp.Letters, dlp.Digits, "+/=-\r\n \t:,\\\"\x7f") // the last: of messages of the interpreter's kernels
	return []dlp.Rule{
		{Name: "aws-access-key-id", Begins: []string{"AKIA", "ASIA"}, After: names, Alphabet: names, Most: 21, Match: awsKeyID},
		{
			Name: "aws-secret-key", Begins: []string{"aws_secret_access_key", "AWS_SECRET_ACCESS_KEY", "SecretAccessKey", "secretAccessKey"},
			Alphabet: dlp.AlphabetOf(dlp.Letters, dlp.Digits, "+/_=: \t\"'\\"), Most: 100, Match: awsSecret(),
		},
		newForm("gitlab-token", tokens, `glpat-[0-9A-Za-z_-]{20,300}`, 307, "glpat-"),
		newForm("e2b-key", tokens, `e2b_[0-9a-f]{40}`, 45, "e2b_"), // the daemon's own tokens, too: see package token
		newForm("docker-token", tokens, `dckr_pat_[0-9A-Za-z_-]{27}`, 37, "dckr_pat_"),
		newForm("google-client-secret", tokens, `GOCSPX-[0-9A-Za-z_-]{28}`, 36, "GOCSPX-"),
		newForm("slack-token", tokens, `xox[bpars]-[0-9]{8,14}-[0-9]{8,14}-[0-9A-Za-z-]{20,80}`, 130, "xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-"),
		{Name: "jwt", Begins: []string{"eyJ"}, Alphabet: dlp.AlphabetOf(dlp.Letters, dlp.Digits, "-_."), Most: 8 << 10, Match: webToken},
		{Name: "private-key", Begins: keyHeads(), Alphabet: armour, Most: 16 << 10, Early: true, Match: privateKey},
		{Name: "private-key", Begins: keyHeads(), Alphabet: armour, Most: 16 << 10, Match: brokenKey},
		{
			Name: "url-password", Begins: []string{"://"}, Alphabet: dlp.AlphabetOf(dlp.Letters, dlp.Digits, ":/@-._~%!$&'()*+,;=<>{}[]?#"),
			Most: 256, Match: urlPassword(),
		},
	}
}

// newForm is a rule of one expression; a letter or digit behind the value makes it another
// thing.
func newForm(name string, alphabet *dlp.Alphabet, expression string, most int, begins ...string) dlp.Rule {
	re := regexp.MustCompile(`\A(?:` + expression + `)`)
	return dlp.Rule{Name: name, Begins: begins, Alphabet: alphabet, Most: most, Match: func(run []byte, _ byte) (from, to int) {
		at := re.FindIndex(run)
		if at == nil || at[1] < len(run) && isWord(run[at[1]]) {
			return 0, 0
		}
		return 0, at[1]
	}}
}

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}

// awsKeyID is a key's name; the one of the documentation ends with EXAMPLE.
func awsKeyID(run []byte, next byte) (from, to int) {
	const length = 20
	if len(run) != length || isWord(next) || bytes.HasSuffix(run, []byte("EXAMPLE")) {
		return 0, 0
	}
	return 0, length
}

func awsSecret() func([]byte, byte) (from, to int) {
	re := regexp.MustCompile(`\A[A-Za-z_]+\\?["']?[ \t]{0,8}[:=][ \t]{0,8}\\?["']?([A-Za-z0-9+/]{40})(?:[^A-Za-z0-9+/=]|\z)`)
	return func(run []byte, _ byte) (from, to int) {
		at := re.FindSubmatchIndex(run)
		if at == nil || bytes.HasSuffix(run[at[2]:at[3]], []byte("EXAMPLEKEY")) {
			return 0, 0
		}
		return at[2], at[3]
	}
}

// webToken is a JSON web token, whose first two parts are base64 of JSON objects.
func webToken(run []byte, _ byte) (from, to int) {
	found, places := jwt.NewDetector().Detect(run)
	if len(places) == 0 || places[0] != 0 {
		return 0, 0
	}
	t, ok := found[0].(jwt.Token)
	if !ok {
		return 0, 0
	}
	return 0, len(t.Value)
}

func keyHeads() []string {
	var heads []string
	for _, kind := range []string{"", "RSA ", "EC ", "DSA ", "OPENSSH ", "ENCRYPTED "} {
		heads = append(heads, "-----BEGIN "+kind+"PRIVATE KEY-----")
	}
	return append(heads, "-----BEGIN PGP PRIVATE KEY BLOCK-----")
}

// The dashes of a key's armour.
const (
	dashes = "-----"
	ending = dashes + "END "
)

// keyText is where in a run the text of a key is; no from: it is no key, but a word about
// one.
func keyText(run []byte) (from, to int) {
	const least = 40 // letters
	from = len(dashes)
	from += bytes.Index(run[from:], []byte(dashes)) + len(dashes) // it begins with a head
	to = len(run)
	if end := bytes.Index(run[from:], []byte(dashes)); end >= 0 {
		to = from + end
	}
	letters := 0
	for _, c := range run[from:to] {
		if isWord(c) || c == '+' || c == '/' {
			letters++
		}
	}
	if letters < least {
		return 0, 0
	}
	return from, to
}

// privateKey is a key in its armour.
func privateKey(run []byte, _ byte) (from, to int) {
	begins, ends := keyText(run)
	rest := run[ends:]
	if begins == 0 || !bytes.HasPrefix(rest, []byte(ending)) {
		return 0, 0
	}
	const most = 40 // of the words in the armour
	closing := bytes.Index(rest[len(ending):], []byte(dashes))
	if closing < 0 || closing > most {
		return 0, 0
	}
	return 0, ends + len(ending) + closing + len(dashes)
}

// brokenKey is one whose end is missing.
func brokenKey(run []byte, _ byte) (from, to int) {
	begins, ends := keyText(run)
	if begins == 0 {
		return 0, 0
	}
	return 0, begins + len(bytes.TrimRight(run[begins:ends], " \t\r\n\\,:\""))
}

// urlPassword is the password of an URL, unless it says that it stands for one.
func urlPassword() func([]byte, byte) (from, to int) {
	re := regexp.MustCompile(`\A://[^\s:@/?#]{1,128}:([^\s:@/?#]{8,128})@[A-Za-z0-9\[]`)
	stands := regexp.MustCompile(`(?i)pass|secret|token|xxx|example|redacted|\*\*\*|\A[<{$%\[]|\A\.+\z`)
	return func(run []byte, _ byte) (from, to int) {
		at := re.FindSubmatchIndex(run)
		if at == nil || stands.Match(run[at[2]:at[3]]) || !strings.ContainsAny(string(run[at[2]:at[3]]), dlp.Digits) {
			return 0, 0
		}
		return at[2], at[3]
	}
}
