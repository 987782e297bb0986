# Asks api.example with curl, and sends it 100 MB that it has asked for.
ask() { curl --silent --show-error --fail --header "Authorization: Bearer $OPENAI_API_KEY" "$@"; }
ask --http1.1 https://api.example/curl/plain
echo
ask --http2 https://api.example/curl/plain
echo
ask --http1.1 https://api.example/curl/too-much
echo
head -c 104857600 /dev/urandom >~/big
for version in --http1.1 --http2; do # the latter has no use for it
	ask $version --header 'Expect: 100-continue' --upload-file ~/big https://api.example/curl/upload >~/said
	sed "s/$(sha256sum ~/big | cut -d' ' -f1)/all of it/" ~/said
	echo
done
rm ~/big
