package pip

import "testing"

func FuzzSettings(f *testing.F) {
	f.Add("global.index-url='https://index.example'\n")
	f.Fuzz(func(_ *testing.T, text string) { parseSettings(text) })
}
