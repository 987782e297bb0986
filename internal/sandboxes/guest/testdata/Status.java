import java.net.HttpURLConnection;
import java.net.URI;
import javax.net.ssl.SSLHandshakeException;

/** Prints the status with which a URL answers, or that its certificate is refused. */
public class Status {
	public static void main(String[] args) throws Exception {
		try {
			System.out.println(((HttpURLConnection) URI.create(args[0]).toURL().openConnection()).getResponseCode());
		} catch (SSLHandshakeException e) {
			System.out.println("refused");
		}
	}
}
