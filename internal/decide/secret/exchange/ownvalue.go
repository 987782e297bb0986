package exchange

import (
	"encoding/base64"
	"regexp"
	"slices"
	"strings"
)

// isPlaceholder tells whether a text is a placeholder and nothing else.
func (p *presented) isPlaceholder(text string) bool {
	return slices.Contains(p.placeholders, strings.Trim(text, `"'`))
}

// holdsPlaceholder tells whether a placeholder is in a text.
func (p *presented) holdsPlaceholder(text string) bool {
	return slices.ContainsFunc(p.placeholders, func(one string) bool { return strings.Contains(text, one) })
}

// endsWithPlaceholder tells whether a text is a placeholder behind what it belongs to: ID:KEY, USER!NAME=KEY.
func (p *presented) endsWithPlaceholder(text string) bool {
	const signs = ":=!/."
	return slices.ContainsFunc(p.placeholders, func(one string) bool {
		before, is := strings.CutSuffix(strings.Trim(text, `"'`), one)
		if !is || before == "" || !strings.ContainsRune(signs, rune(before[len(before)-1])) || strings.ContainsAny(before, " \t,;\"'\\") {
			return false
		}
		pieces := strings.FieldsFunc(before, func(c rune) bool { return strings.ContainsRune(signs, c) })
		// Who parts a value at a sign takes what stands behind the first one for the key. By an equals sign
		// alone nobody does: of PVEAPIToken=USER!NAME=KEY the first one is the scheme's.
		last := len(before) - 1
		parted := before[last] != '=' && strings.IndexByte(before, before[last]) < last || strings.Contains(before[:last], ":")
		return !parted && !slices.ContainsFunc(pieces, func(piece string) bool { return !isIdentity(piece) || likeKey(piece) && !uuids.MatchString(piece) })
	})
}

// another tells whether a value has another credential than the placeholder, also beside it:
// hosts take the first word that they know, and pass over the rest. is names what has the value.
func (p *presented) another(is, value string) bool {
	words := wordsOf(value)
	if len(words) == 0 {
		return false
	}
	authorizes := strings.HasSuffix(is, "authorization") || strings.HasSuffix(is, "auth")
	if len(words) == 2 && strings.EqualFold(words[0], "basic") {
		return !p.isPair(words[1])
	}
	has := false
	for i, word := range words {
		name, text, named := strings.Cut(word, "=")
		named = named && schemes.MatchString(name) && isIdentity(name)
		name, text = foldName(name), strings.Trim(text, `"'`)
		switch {
		case p.isPlaceholder(word) || named && p.isPlaceholder(text) || authorizes && p.endsWithPlaceholder(word):
			has = true
		case i == 0 && len(words) > 1 && isScheme(word, authorizes):
		case named && text == "":
		case named && !proves(name) && isIdentity(text) && !strings.ContainsAny(text, `,;\`): // whom it is for
		default:
			return true
		}
	}
	return !has
}

// isPair tells whether user and password of basic authentication are a placeholder's: it is one
// of them, and the other is no credential. Beside a placeholder that is the password there is
// whose it is, and beside one that is the user there is nothing, or a word that clients have
// there.
func (p *presented) isPair(coded string) bool {
	text, err := base64.StdEncoding.DecodeString(coded) // others are not swapped either
	if err != nil {
		return false
	}
	user, password, both := strings.Cut(string(text), ":")
	switch {
	case !both:
		return false
	case slices.Contains(p.placeholders, password):
		return slices.Contains(p.placeholders, user) || isIdentity(user) && !p.holdsPlaceholder(user)
	}
	return slices.Contains(p.placeholders, user) && saysNothing(password)
}

// wordsOf are a value's words. A blank within quotes parts none.
func wordsOf(value string) (all []string) {
	begin, quoted := 0, false
	for i := 0; i <= len(value); i++ {
		switch {
		case i < len(value) && value[i] == '"':
			quoted = !quoted
		case i == len(value) || !quoted && strings.IndexByte(" \t,;", value[i]) >= 0:
			if begin < i {
				all = append(all, value[begin:i])
			}
			begin = i + 1
		}
	}
	return all
}

// schemes finds words that may be one, and runs what may be a key without a blank in it.
var (
	schemes = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,31}$`)
	runs    = regexp.MustCompile(`[A-Za-z0-9_-]{20,}`)
	// uuids finds what looks as if it were drawn by lot, and says whose a key is with many services.
	uuids = regexp.MustCompile(`^[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`)
)

// isScheme tells whether the first word of a value says what the next one is.
func isScheme(word string, authorizes bool) bool {
	if !authorizes {
		return slices.Contains([]string{"bearer", "token", "basic", "apikey", "key", "bot"}, foldName(word))
	}
	return schemes.MatchString(word) && isIdentity(word) && !likeKey(word)
}

// keyBegins finds what many services begin their keys with.
var keyBegins = regexp.MustCompile(`^(?:gh[opsur]_|github_pat_|gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|imt)-|xox[a-z]-|xapp-|npm_|pypi-|hf_|ya29\.|eyJ|SG\.|shp[a-z]{2}_|dckr_pat_|do[opr]_v1_|glsa_|ATATT|ATCTT|ATBB|AIza|` +
	`PMAK-|pplx-|xai-|CCIPAT_|CCIPRJ_|lin_api_|ntn_|figd_|rubygems_|whsec_|GOCSPX-|sq0[a-z]{3}-|NRAK-|(?:sk|pk|rk|pat|key|secret)[-_].{12})`)

// isIdentity tells whether a text may say who somebody is. That it is no key can't be known of
// every text: it has none of the beginnings that keys have.
func isIdentity(text string) bool {
	const most = 256
	return len(text) <= most && !keyBegins.MatchString(text)
}

// likeKey tells whether a text has in it what looks as if it were drawn by lot.
func likeKey(text string) bool {
	if keyBegins.MatchString(text) {
		return true
	}
	for _, run := range runs.FindAllString(text, -1) {
		count := func(letters string) (n int) {
			for i := range len(run) {
				if strings.IndexByte(letters, run[i]) >= 0 {
					n++
				}
			}
			return n
		}
		const few = 3
		lower, upper, figures := count("abcdefghijklmnopqrstuvwxyz"), count("ABCDEFGHIJKLMNOPQRSTUVWXYZ"), count("0123456789")
		hexadecimal := strings.Trim(run, "0123456789abcdefABCDEF-") == ""
		if hexadecimal && figures >= few || figures >= few && lower >= few && upper >= few {
			return true
		}
	}
	return false
}
