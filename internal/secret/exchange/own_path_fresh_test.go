package exchange

import (
	"strings"
	"testing"
)

// TestOwnKeysInAPath: where the path holds the credential, as at a messenger of bots, a key of the
// client's own is refused: also beside the placeholder, as a second value is in every other place,
// and also one that has few figures, which its owner can have made until it has. The controls: the
// placeholder in its place leaves with the secret, and a key with many figures alone is refused.
func TestOwnKeysInAPath(t *testing.T) {
	t.Parallel()
	const many, few = "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsa9w", "110201543:AAHdqTcvCHxvGWJxfSeofSAsOKxPALDsaWw"
	bot := []Credential{swapping(Path)}
	if got, err := leaves(t, bot, post(t, "/bot"+fake+"/sendMessage", "application/json", "{}")); err != nil || strings.Contains(got, fake) {
		t.Errorf("INCONCLUSIVE: the placeholder in its place: %q, %v", got, err)
	}
	if got, err := leaves(t, bot, post(t, "/bot"+many+"/sendMessage", "application/json", "{}")); err == nil {
		t.Errorf("INCONCLUSIVE: an own key leaves: %q", got)
	}
	for how, path := range map[string]string{
		"behind the own key":         "/bot" + many + "/sendMessage/" + fake,
		"as a parameter of the path": "/bot" + many + "/sendMessage;x=" + fake,
		"before the own key":         "/x" + fake + "/bot" + many + "/sendMessage",
		"with few figures":           "/bot" + few + "/sendMessage",
	} {
		if got, err := leaves(t, bot, post(t, path, "application/json", "{}")); err == nil {
			t.Errorf("%s, it leaves: %.120q", how, got)
		}
	}
}
