export class Playback { constructor(base) { this.base = base; } offer() {} toggle() {} }
