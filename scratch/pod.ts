import * as m from "../src/cli/machine/index.ts";
import { runRawPod } from "../test/support/raw-pod.ts";
const layout = m.layoutOf("/var/lib/nlt-try");
for (const n of ["a","b"]) {
const pod = await runRawPod({endpoint: layout.endpoint, name: n, image: "localhost/nodelet/busybox:1", command: ["sh","-c","echo hi > /index.html; httpd -f -p 80 -h /"], cgroupParent: layout.cgroupRoot + "/pod"+n, hostPort: {host: n==="a"?18080:18081, container: 80}});
console.log(pod);
console.log(await (await fetch(`http://${pod.ip}/`)).text());
console.log(await (await fetch(`http://127.0.0.1:${n==="a"?18080:18081}/`)).text());
}
