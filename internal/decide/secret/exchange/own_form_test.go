package exchange

import (
	"strings"
	"testing"
)

// TestAFormSignedWithAnotherKey: an upload by a form (POST Object) has key and signature among its
// parts. To a host whose requests are signed anew it is signed with a key of the client's own, and
// so refused, as one signed in its header or URL is. The controls: these two are refused, and a
// form without a signature leaves.
func TestAFormSignedWithAnotherKey(t *testing.T) {
	t.Parallel()
	const kind = "multipart/form-data; boundary=x"
	part := func(name, value string) string {
		return "--x\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value + "\r\n"
	}
	upload := func(fields ...string) string {
		body := part("key", "loot.txt")
		for i := 0; i < len(fields); i += 2 {
			body += part(fields[i], fields[i+1])
		}
		return body + part("file", "what the sandbox has") + "--x--\r\n"
	}
	c := []Credential{signing()}
	header := post(t, "/their-bucket", kind, upload())
	header.Header.Set("Authorization", strings.Replace(signature, fake, "AKIATHEIRSTHEIRSTHEIR", 1))
	if got, err := leaves(t, c, header); err == nil {
		t.Errorf("the control: signed in its header it leaves: %q", got)
	}
	if got, err := leaves(t, c, post(t, "/their-bucket?X-Amz-Credential=AKIATHEIRS&X-Amz-Signature=00ff", kind, upload())); err == nil {
		t.Errorf("the control: signed in its URL it leaves: %q", got)
	}
	if _, err := leaves(t, c, post(t, "/public-bucket", kind, upload())); err != nil {
		t.Errorf("the control: without a signature: %v", err)
	}
	long := strings.Repeat("a", 2<<20)
	if _, err := leaves(t, c, post(t, "/public-bucket", kind, upload("x-amz-meta-a", "signature", "Content-Type", "image/png", "about", "name = the signature; "+long))); err != nil {
		t.Errorf("the control: a long one without a signature: %v", err)
	}
	for version, fields := range map[string][]string{
		"4, behind a long part": {"about", long, "X-Amz-Credential", "AKIATHEIRSTHEIRSTHEIR/a", "X-Amz-Signature", "00ff"},
		"4, a name in pieces":   {"policy", "eyJ9", `x-amz-cred\"; name*=utf-8''x%2Damz%2dcredential; x="`, "AKIATHEIRSTHEIRSTHEIR/a"},
		"4, many blanks":        {"policy", "eyJ9", `x"; name` + strings.Repeat(" \r\n\t", 900) + `="x-amz-credential`, "AKIATHEIRSTHEIRSTHEIR/a"},
		"4":                     {"policy", "eyJ9", "x-amz-algorithm", "AWS4-HMAC-SHA256", "x-amz-credential", "AKIATHEIRSTHEIRSTHEIR/20261128/eu-west-1/s3/aws4_request", "x-amz-date", "20261128T000000Z", "x-amz-signature", "00ff"},
		"2":                     {"policy", "eyJ9", "AWSAccessKeyId", "AKIATHEIRSTHEIRSTHEIR", "signature", "00ff"},
	} {
		for _, sent := range []string{kind, "Multipart/Form-Data; boundary=\"x\"", "multipart/form-data"} {
			if got, err := leaves(t, c, post(t, "/their-bucket", sent, upload(fields...))); err == nil {
				t.Errorf("version %s as %s: a form signed with another key leaves: %.80q", version, sent, got)
			}
		}
	}
}
