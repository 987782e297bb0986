package advisory

import (
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// The fixed words of a lookalike, in the order in which they are looked for.
const (
	howCase       = "only the case differs"
	howSeparators = "only the separators differ"
	howConfusable = "characters that look alike are exchanged"
	howSwapped    = "two letters are swapped"
	howDiffers    = "one letter differs"
	howAdded      = "one letter is added"
	howMissing    = "one letter is missing"
	howScope      = "the scope is written differently"
	howScopeNear  = "the scope is nearly the same"
	howWords      = "the words are swapped"
	howTwo        = "two letters differ"
	howAffix      = "only a prefix or suffix differs"
	howHost       = "the host is another one"
	howOwnerNear  = "the owner is nearly the same"
	howOwner      = "the same name by another owner"
)

// squeeze leaves out separators and case.
func squeeze(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("-_.~@/", r) {
			return -1
		}
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, name)
}

// foldLookalikes writes characters that look alike, alone or side by side, as one. Names
// are ASCII, so no other alphabet's letters come here.
func foldLookalikes(name string) string {
	name = strings.NewReplacer("rn", "m", "vv", "w", "1", "l", "0", "o").Replace(squeeze(name))
	return strings.ReplaceAll(name, "i", "l") // I and l, where case is lost
}

// splitWords splits a name at its separators.
func splitWords(name string) []string {
	return strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune("-_.~@/", r) })
}

// sortedWords is equal for names of the same words in another order; "" for one
// word.
func sortedWords(name string) string {
	w := splitWords(name)
	if len(w) < 2 {
		return ""
	}
	slices.Sort(w)
	return strings.Join(w, "-")
}

// How many letters may differ in a word or name of so many letters. Below four,
// everything is near to everything; and up to five, or with two letters, the
// first letter must be the same: measured on names that people use, those that
// differ there are mostly other words.
const (
	oneLetterFrom  = 4
	anyLetterFrom  = 6
	twoLettersFrom = 8
)

func mostDifference(length int) int {
	switch {
	case length >= twoLettersFrom:
		return 2
	case length >= oneLetterFrom:
		return 1
	}
	return 0
}

// differing is the number of letters in which two names differ, 0 if they are
// not near. Names of equally many words must be near word by word: "pytest-env"
// is no misspelt "pytest-cov".
func differing(name, popular string) int {
	length := min(len(name), len(popular))
	total := countEdits(name, popular)
	if total == 0 || total > mostDifference(length) {
		return 0
	}
	if name[0] != popular[0] && (total > 1 || length < anyLetterFrom) {
		return 0
	}
	a, b := splitWords(name), splitWords(popular)
	if len(a) != len(b) || len(a) < 2 {
		return total
	}
	for i := range a {
		if a[i] == b[i] {
			continue
		}
		if countEdits(a[i], b[i]) > mostDifference(max(len(a[i]), len(b[i]))) {
			return 0
		}
	}
	return total
}

// howDiffering words a difference of n letters.
func howDiffering(name, popular string, n int) string {
	switch {
	case n > 1:
		return howTwo
	case len(name) > len(popular):
		return howAdded
	case len(name) < len(popular):
		return howMissing
	case letters(name) == letters(popular) && swapped(name, popular):
		return howSwapped
	}
	return howDiffers
}

// swapped reports names of equal length that differ in two neighbours.
func swapped(a, b string) bool {
	for i := range len(a) - 1 {
		if a[i] != b[i] {
			return a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
		}
	}
	return false
}

// nearWord compares two single words, as owners and scopes are; "" if they are not
// near.
func nearWord(name, popular string) string {
	switch {
	case strings.EqualFold(name, popular):
		return howCase
	case squeeze(name) == squeeze(popular):
		return howSeparators
	case len(popular) >= oneLetterFrom && foldLookalikes(name) == foldLookalikes(popular):
		return howConfusable
	}
	if n := differing(name, popular); n > 0 {
		return howDiffering(name, popular, n)
	}
	if slices.Contains(nameStems(name), popular) {
		return howAffix
	}
	return ""
}

// isAffix knows words that people, and those who want to be mistaken for
// somebody, put before or after a name.
func isAffix(word string) bool {
	switch word {
	case "js", "node", "nodejs", "npm", "python", "python2", "python3", "py", "py3", "pip", "go", "golang", "rust", "rs",
		"dev", "cli", "lib", "2", "3", "v2", "official", "latest", "new":
		return true
	}
	return false
}

const shortestStem = 4

// nameStems are what is left of a name without an affix: "requests" of
// "python-requests", of "requests2" and of "requestsjs".
func nameStems(name string) []string {
	var found []string
	keep := func(stem string) {
		if len(stem) >= shortestStem {
			found = append(found, stem)
		}
	}
	if i := strings.IndexAny(name, "-._"); i > 0 && isAffix(name[:i]) {
		keep(name[i+1:])
	}
	if i := strings.LastIndexAny(name, "-._"); i > 0 && isAffix(name[i+1:]) {
		keep(name[:i])
	}
	for _, affix := range []string{"js", "2", "3"} {
		if stem, ok := strings.CutSuffix(name, affix); ok && !strings.ContainsAny(stem[max(len(stem)-1, 0):], "-._0123456789") {
			keep(stem)
		}
	}
	return found
}

// lookalikeOf makes an answer.
func lookalikeOf(name, how string) *policy.Lookalike { return &policy.Lookalike{Name: name, How: how} }
