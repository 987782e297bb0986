package lockfile

import (
	"regexp"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// Written once; regexps are constant.
var (
	// comment is where pip finds one.
	comment = regexp.MustCompile(`(^|\s)#.*$`)
	// begins is the name at a requirement's begin.
	begins = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[A-Za-z0-9._,\s-]*\])?\s*(?:[<>=!~(@]|$)`)
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

// endsOfPython end a line for Python beside a line feed, so that a comment ends there.
const endsOfPython = "\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029"

// maxWords bounds a requirement: one with hashes for all its wheels has some
// hundred.
const maxWords = 10_000

// word is a word of a requirement and its line.
type word struct {
	text string
	line int
}

// readRequirements reads pip's requirements with hashes. A line that is no pin with its hashes
// refuses its name; options that would bring packages from elsewhere are errors. The project's own
// directories are left out.
func readRequirements(b *builder, data []byte) error {
	if err := b.checkLines(data, maxLine); err != nil {
		return err
	}
	var words []word
	line := 0
	open := false // the line before is continued within a word
	for physical := range strings.Lines(string(data)) {
		line++
		physical = strings.TrimRight(physical, "\r\n")
		if strings.ContainsAny(physical, endsOfPython) {
			return b.wrongLine(line, "a character is in the line that ends one for pip alone; take it out")
		}
		continued := strings.HasSuffix(physical, `\`)
		bare := physical
		if strings.ContainsRune(physical, '#') {
			bare = comment.ReplaceAllString(physical, "")
		}
		if continued && !strings.HasSuffix(bare, `\`) {
			return b.wrongLine(line, "a comment ends with a backslash, which would make the next line a comment too")
		}
		bare = strings.TrimSuffix(bare, `\`)
		words = appendWords(words, bare, line, open)
		if bare != "" {
			open = !isBlank(bare[len(bare)-1])
		}
		open = open && continued
		if len(words) > maxWords {
			return b.wrongLine(line, "a requirement has more than %d parts", maxWords)
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

// appendWords adds the words of a line. Within a word the first goes on with the last: a
// continued line is joined to the next by nothing.
func appendWords(words []word, text string, line int, within bool) []word {
	for w := range strings.FieldsSeq(text) {
		if within && len(words) > 0 && !isBlank(text[0]) {
			words[len(words)-1].text += w
		} else {
			words = append(words, word{w, line})
		}
		within = false
	}
	return words
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// requirement reads one logical line.
func (b *builder) requirement(words []word) error {
	if len(words) == 0 {
		return nil
	}
	line := words[0].line
	if strings.HasPrefix(words[0].text, "-") {
		return b.requirementOptions(words)
	}
	end := 0
	var spec []string
	for end < len(words) && !strings.HasPrefix(words[end].text, "-") {
		spec = append(spec, words[end].text)
		end++
	}
	return b.requirementPin(line, strings.Join(spec, " "), words[end:])
}

// requirementOptions reads a line of options, of which pip takes several.
func (b *builder) requirementOptions(words []word) error {
	for i, w := range words {
		option, of, _ := strings.Cut(w.text, "=")
		if of == "" && i+1 < len(words) {
			of = words[i+1].text
		}
		switch {
		case harmless(w.text):
		case (option == "-e" || option == "--editable") && isDirectory(of):
			b.skipEntry(w.line, of, "is a directory of the project's own")
		case strings.HasPrefix(w.text, "-"):
			return b.wrongLine(w.line, "%s is not read in a lockfile: it brings in what has no hash here, or another index; take the line out, or give the other file with --lockfile too", text.Shorten(option, maxQuoted))
		case strings.ContainsAny(w.text, `"'\`) || strings.Contains(w.text, "${"):
			return b.wrongLine(w.line, "%q is not read in a line of options, which pip may part at other places for it", text.Shorten(w.text, maxQuoted))
		}
	}
	return nil
}

// isDirectory tells whether a requirement is a path, such as tools write for the project itself and its members.
func isDirectory(of string) bool {
	return strings.HasPrefix(of, ".") || strings.HasPrefix(of, "/") || strings.HasPrefix(of, "file:")
}

// isArchive tells whether a requirement is a file in the project's directory, whose package pip finds out from the file.
func isArchive(of string) bool {
	of, _, _ = strings.Cut(of, "[") // its extras
	of = strings.TrimSpace(of)
	return slices.ContainsFunc([]string{".whl", ".zip", ".tar", ".tgz", ".tbz", ".txz", ".tlz", ".tar.gz", ".tar.bz2", ".tar.xz", ".tar.lz", ".tar.lzma"}, func(suffix string) bool {
		return strings.HasSuffix(strings.ToLower(of), suffix)
	}) && !strings.ContainsAny(of, "@:=<>~")
}

// requirementPin reads a requirement and its hashes.
func (b *builder) requirementPin(line int, spec string, hashes []word) error {
	if strings.Contains(spec, "${") {
		return b.wrongLine(line, "variables are not read in a lockfile")
	}
	before, _, _ := strings.Cut(spec, ";")
	before = strings.TrimSpace(before)
	if isDirectory(before) {
		b.skipEntry(line, before, "is a path of the project's own")
		return nil
	}
	digests, lacks, err := b.requirementHashes(hashes)
	if err != nil {
		return err
	}
	named, m := begins.FindStringSubmatch(before), pinned.FindStringSubmatch(before)
	switch {
	case named == nil || isArchive(before):
		return b.wrongLine(line, "%q has no name of a package; write name==version with its --hash", text.Shorten(before, maxQuoted))
	case strings.ContainsAny(before, "@:"):
		return b.unpinnable(line, named[1], "", "comes from a URL or a repository, not from an index")
	case m == nil || strings.Contains(m[2], "*"):
		return b.unpinnable(line, named[1], "", "is not pinned to one version")
	case lacks != "":
		return b.unpinnable(line, m[1], m[2], lacks)
	}
	ref, is, err := b.refOf(line, m[1], m[2])
	if err != nil || !is {
		return err
	}
	return b.pinRelease(line, ref, digests)
}

// requirementHashes reads "--hash=algorithm:hex" and "--hash algorithm:hex"; lacks: one of them pins nothing.
func (b *builder) requirementHashes(words []word) (digests []string, lacks string, err error) {
	for i := 0; i < len(words); i++ {
		w := words[i]
		hash, ok := strings.CutPrefix(w.text, "--hash=")
		if !ok && w.text == "--hash" && i+1 < len(words) {
			i++
			hash, ok = words[i].text, true
		}
		if !ok {
			return nil, "", b.wrongLine(w.line, "%q is not understood behind a pin; only --hash is", text.Shorten(w.text, maxQuoted))
		}
		digest, wrong := colonDigest(hash)
		if wrong != "" {
			lacks = wrong
			continue
		}
		digests = append(digests, digest)
	}
	return digests, lacks, nil
}
