package lockfile

import (
	"regexp"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/excerpt"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
)

// Written once; regexps are constant.
var (
	// comment is where pip finds one.
	comment = regexp.MustCompile(`(^|\s)#.*$`)
	// pinned is "name [extras] == version", before the marker.
	pinned = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[A-Za-z0-9._,\s-]*\])?\s*={2,3}\s*([^\s,;=]+)$`)
)

// harmless are options of a whole file that name no other source of packages.
func harmless(option string) bool {
	switch name, _, _ := strings.Cut(option, "="); name {
	case "--require-hashes", "--no-binary", "--only-binary", "--prefer-binary", "--pre":
		return true
	}
	return false
}

// maxWords bounds a requirement: one with hashes for all its wheels has some
// hundred.
const maxWords = 10_000

// word is a word of a requirement and its line.
type word struct {
	text string
	line int
}

// readRequirements reads pip's requirements with hashes. Every line must be a
// pin with its hashes; what would bring packages from elsewhere is refused.
func readRequirements(b *builder, data []byte) error {
	if err := b.lines(data, maxLine); err != nil {
		return err
	}
	var words []word
	line := 0
	for physical := range strings.Lines(string(data)) {
		line++
		physical = strings.TrimRight(physical, "\r\n")
		continued := strings.HasSuffix(physical, `\`)
		bare := physical
		if strings.ContainsRune(physical, '#') {
			bare = comment.ReplaceAllString(physical, "")
		}
		if continued && !strings.HasSuffix(bare, `\`) {
			return b.wrong(line, "a comment ends with a backslash, which would make the next line a comment too")
		}
		for w := range strings.FieldsSeq(strings.TrimSuffix(bare, `\`)) {
			words = append(words, word{w, line})
		}
		if len(words) > maxWords {
			return b.wrong(line, "a requirement has more than %d parts", maxWords)
		}
		if continued {
			continue
		}
		if err := b.requirement(words); err != nil {
			return err
		}
		words = words[:0]
	}
	return b.requirement(words)
}

// requirement reads one logical line.
func (b *builder) requirement(words []word) error {
	if len(words) == 0 {
		return nil
	}
	line := words[0].line
	if strings.HasPrefix(words[0].text, "-") {
		if harmless(words[0].text) {
			return nil
		}
		option, _, _ := strings.Cut(words[0].text, "=")
		return b.wrong(line, "%s is not read in a lockfile: it brings in what has no hash here, or another index; take the line out, or give the other file with --lockfile too", excerpt.Of(option, maxQuoted))
	}
	end := 0
	var spec []string
	for end < len(words) && !strings.HasPrefix(words[end].text, "-") {
		spec = append(spec, words[end].text)
		end++
	}
	ref, err := b.requirementRef(line, strings.Join(spec, " "))
	if err != nil {
		return err
	}
	digests, err := b.requirementHashes(ref, words[end:])
	if err != nil {
		return err
	}
	return b.pin(line, ref, digests)
}

func (b *builder) requirementRef(line int, spec string) (pkgref.Ref, error) {
	if strings.Contains(spec, "${") {
		return pkgref.Ref{}, b.wrong(line, "variables are not read in a lockfile")
	}
	before, _, _ := strings.Cut(spec, ";")
	before = strings.TrimSpace(before)
	if strings.Contains(before, "://") || strings.Contains(before, "@") {
		return pkgref.Ref{}, b.wrong(line, "%q names a URL or a repository; only releases of an index can be locked", excerpt.Of(before, maxQuoted))
	}
	m := pinned.FindStringSubmatch(before)
	if m == nil || strings.Contains(m[2], "*") {
		return pkgref.Ref{}, b.wrong(line, "%q is not pinned; write name==version with its --hash", excerpt.Of(before, maxQuoted))
	}
	return b.ref(line, m[1], m[2])
}

// requirementHashes reads "--hash=algorithm:hex" and "--hash algorithm:hex".
func (b *builder) requirementHashes(ref pkgref.Ref, words []word) ([]string, error) {
	var digests []string
	for i := 0; i < len(words); i++ {
		w := words[i]
		hash, ok := strings.CutPrefix(w.text, "--hash=")
		if !ok && w.text == "--hash" && i+1 < len(words) {
			i++
			hash, ok = words[i].text, true
		}
		if !ok {
			return nil, b.wrong(w.line, "%q is not understood behind a pin; only --hash is", excerpt.Of(w.text, maxQuoted))
		}
		digest, strong, err := b.colonDigest(w.line, hash)
		if err != nil {
			return nil, err
		}
		if !strong {
			return nil, b.wrong(w.line, "%s %s has a weak hash, which can be forged; %s", ref.Name, ref.Version, lockAgain)
		}
		digests = append(digests, digest)
	}
	return digests, nil
}
