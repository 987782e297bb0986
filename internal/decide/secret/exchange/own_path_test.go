package exchange

import (
	"strings"
	"testing"
)

// TestOwnKeysInAPath: where the path holds the credential, as at a messenger of bots, a key of the
// client's own is refused: also beside the placeholder, as a second value is in every other place,
// and also one that has few figures. The controls: the placeholder in its place leaves with the
// secret, beside what usual clients have in paths, and a key with many figures alone is refused.
func TestOwnKeysInAPath(t *testing.T) {
	t.Parallel()
	const many, few = "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsa9w", "110201543:AAHdqTcvCHxvGWJxfSeofSAsOKxPALDsaWw"
	bot := []Credential{swapping(Path)}
	for _, path := range []string{
		"/bot" + fake + "/sendMessage", "/file/bot" + fake + "/documents/file_110.jpg", "/services/T00000000/B00000000/" + fake, "/api/webhooks/1054321098765432109/" + fake + "/messages/1054321098765432109",
		"/v3/" + fake, "/bot110201543:" + fake + "/getUpdates;a=b", "/nft/v3/" + fake + "/getContractsForOwnerWithMetadata",
		"/token/" + fake + "/request/0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0", "/" + fake + "/repos/a/b/commits/0123456789abcdef0123456789abcdef01234567",
	} {
		if got, err := leaves(t, bot, post(t, path, "application/json", "{}")); err != nil || strings.Contains(got, fake) {
			t.Errorf("the control: the placeholder in %s: %q, %v", path, got, err)
		}
	}
	if got, err := leaves(t, bot, post(t, "/bot"+many+"/sendMessage", "application/json", "{}")); err == nil {
		t.Errorf("the control: an own key leaves: %q", got)
	}
	for how, path := range map[string]string{
		"behind the own key":         "/bot" + many + "/sendMessage/" + fake,
		"as a parameter of the path": "/bot" + many + "/sendMessage;x=" + fake,
		"before the own key":         "/x" + fake + "/bot" + many + "/sendMessage",
		"in one segment with it":     "/bot" + many + fake + "/sendMessage",
		"before it in one":           "/bot" + fake + "." + many + "/sendMessage",
		"escaped":                    "/bot" + strings.ReplaceAll(many, "A", "%41") + "/sendMessage/" + fake,
		"twice escaped":              "/bot" + strings.ReplaceAll(many, ":", "%253A") + "/a/" + fake,
		"a UUID before it":           "/token/0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0/" + fake + "/a",
		"behind it as a parameter":   "/token;a=" + fake + "/0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0",
		"a UUID with more":           "/token/" + fake + "/0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0:a",
		"other figures behind it":    "/v3/" + fake + "/0b1c2d3e4f5061728394a5b6c7d8e9f0",
		"a webhook's":                "/services/T00000000/B00000000/a1B2c3D4e5F6g7H8i9J0k1L2/" + fake,
		"beside it, few figures":     "/bot" + few + "/sendMessage/" + fake,
		"with few figures":           "/bot" + few + "/sendMessage",
	} {
		if got, err := leaves(t, bot, post(t, path, "application/json", "{}")); err == nil {
			t.Errorf("%s, it leaves: %.120q", how, got)
		}
	}
}
