import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

/** Asks api.example with Java's own client, over both versions of HTTP. */
public class Ask {
	public static void main(String[] none) throws Exception {
		HttpRequest request = HttpRequest.newBuilder(URI.create("https://api.example/java/plain"))
				.header("Authorization", "Bearer " + System.getenv("OPENAI_API_KEY")).build();
		for (HttpClient.Version version : new HttpClient.Version[] {HttpClient.Version.HTTP_1_1, HttpClient.Version.HTTP_2}) {
			HttpClient client = HttpClient.newBuilder().version(version).build();
			System.out.println(client.send(request, HttpResponse.BodyHandlers.ofString()).body());
		}
	}
}
