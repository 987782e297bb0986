package suspend

import (
	"fmt"
	"testing"
)

// TestATokensImagesLeaveRoom: one token's frozen sandboxes, however many, leave another token room for
// its first, and two tokens' leave it a third. The host's own may take all of it.
func TestATokensImagesLeaveRoom(t *testing.T) {
	t.Parallel()
	const most = 8
	for name, c := range map[string]struct {
		tokens  []string
		fitting int
	}{
		"one token":  {[]string{"tok-mallory"}, most * 3 / 4},
		"two tokens": {[]string{"tok-mallory", "tok-mallet"}, most},
		"the host":   {[]string{""}, most},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shelf, fitting := NewShelf(t.TempDir(), Room{Bytes: 1 << 30, Count: most}), 0
			for i := range 2 * most {
				if shelf.takeRoom(c.tokens[i%len(c.tokens)], fmt.Sprint("sb-", i), 1) == nil {
					fitting++
				}
			}
			if fitting != c.fitting {
				t.Errorf("%d fit, not %d", fitting, c.fitting)
			}
			if err := shelf.takeRoom("tok-bob", "sb-bob", 1); err != nil {
				t.Errorf("another token's first: %v", err)
			}
			if fitting >= most && shelf.takeRoom("tok-bob", "sb-bob2", 1) == nil {
				t.Error("another token's second fits where there is no room")
			}
		})
	}
}
