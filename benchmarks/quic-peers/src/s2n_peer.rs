//! The sender and the receiver of s2n-quic.

use std::net::SocketAddr;

use s2n_quic::client::Connect;
use s2n_quic::provider::{io, limits::Limits};
use s2n_quic::{Client, Server};

use crate::settings::Settings;
use crate::{CHUNK, Failure, Identity};

fn limits(settings: Settings) -> Result<Limits, Failure> {
    let Some(bytes) = settings.window else {
        return Ok(Limits::new());
    };
    let window = u64::from(bytes);
    Ok(Limits::new()
        .with_data_window(window)?
        .with_bidirectional_local_data_window(window)?
        .with_bidirectional_remote_data_window(window)?
        .with_unidirectional_data_window(window)?
        .with_max_send_buffer_size(bytes)?)
}

fn socket(address: &str, settings: Settings) -> Result<io::Default, Failure> {
    let address: SocketAddr = address.parse()?;
    let mut builder = io::Default::builder().with_receive_address(address)?;
    if let Some(mtu) = settings.mtu {
        builder = builder.with_max_mtu(mtu)?;
    }
    if let Some(gso) = settings.gso {
        builder = builder.with_gso(gso)?;
    }
    Ok(builder.build()?)
}

pub async fn receive(identity: &Identity, settings: Settings) -> Result<(), Failure> {
    let (certificate, key) = (identity.certificate.pem(), identity.key.serialize_pem());
    let mut server = Server::builder()
        .with_tls((certificate.as_str(), key.as_str()))?
        .with_limits(limits(settings)?)?
        .with_io(socket("127.0.0.1:0", settings)?)?
        .start()?;
    println!("{}", server.local_addr()?);
    let mut connection = server.accept().await.ok_or("no connection")?;
    let mut stream = connection
        .accept_bidirectional_stream()
        .await?
        .ok_or("no stream")?;
    let mut received = 0_u64;
    while let Some(chunk) = stream.receive().await? {
        received += chunk.len() as u64;
    }
    // The sender stops its clock when it receives this reply.
    stream.send(received.to_be_bytes().to_vec().into()).await?;
    // Waits until the sender closes the connection.
    let _ = stream.close().await;
    let _ = connection.accept_bidirectional_stream().await;
    Ok(())
}

pub async fn send(to: SocketAddr, certificate: &str, mib: usize, settings: Settings) -> Result<(), Failure> {
    let client = Client::builder()
        .with_tls(certificate)?
        .with_limits(limits(settings)?)?
        .with_io(socket("127.0.0.1:0", settings)?)?
        .start()?;
    let mut connection = client
        .connect(Connect::new(to).with_server_name("localhost"))
        .await?;
    let mut stream = connection.open_bidirectional_stream().await?;
    let chunk = bytes::Bytes::from(vec![0x5a; CHUNK]);
    for _ in 0..(mib << 20) / CHUNK {
        stream.send(chunk.clone()).await?;
    }
    stream.finish()?;
    let answer = stream.receive().await?.ok_or("no answer")?;
    if answer[..] != ((mib as u64) << 20).to_be_bytes() {
        return Err("bytes are missing".into());
    }
    connection.close(0_u32.into());
    Ok(())
}
