/* Pages on the disk may start no worker; this one is a hidden frame, so that the search works there too. */
if (location.protocol === "file:")
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.queue = []
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.appendChild(this.frame)
      const place = new URL(url, location)
      const inside = this.frame.contentWindow
      addEventListener("message", event => {
        if (event.source !== inside) return
        const copy = new MessageEvent("message", { data: event.data })
        this.dispatchEvent(copy)
        if (this.onmessage) this.onmessage(copy)
      })
      inside.document.open()
      inside.document.write("<!doctype html><body></body>")
      inside.document.close()
      const self = this
      inside.postMessage = data => window.dispatchEvent(new MessageEvent("message", { data, source: inside }))
      inside.importScripts = (...urls) => Promise.all(urls.map(address => load(new URL(address, place))))
      function load(address) {
        return new Promise((done, failed) => {
          const script = inside.document.createElement("script")
          script.src = address
          script.onload = done
          script.onerror = () => failed(new Error("not loaded: " + script.src))
          inside.document.body.appendChild(script)
        })
      }
      load(place).then(() => {
        this.ready = true
        this.queue.splice(0).forEach(data => self.postMessage(data))
      })
    }
    postMessage(data) {
      if (!this.ready) this.queue.push(data)
      else this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }))
    }
    terminate() {
      this.frame.remove()
    }
  }
