package lockfile

import "strings"

// readToy reads toy.lock: on each line a name, a version and a digest.
func readToy(b *builder, data []byte) error {
	if err := b.lines(data, maxLine); err != nil {
		return err
	}
	line := 0
	for text := range strings.Lines(string(data)) {
		line++
		words := strings.Fields(text)
		if len(words) != 3 {
			return b.wrong(line, "a line must be name, version and digest")
		}
		ref, err := b.ref(line, words[0], words[1])
		if err != nil {
			return err
		}
		digest, strong, err := b.colonDigest(line, words[2])
		if err != nil {
			return err
		}
		if !strong {
			err = b.unpinnable(line, ref.Name, ref.Version, hasWeakHash)
		} else {
			err = b.pin(line, ref, []string{digest})
		}
		if err != nil {
			return err
		}
	}
	return nil
}
